// What the JavaScript programs of this folder share: what they say, what must come back, and how a call's end is told.

import { readFileSync } from 'node:fs'

const given = JSON.parse(readFileSync(process.env.TURINGLIKE_CHECK, 'utf8'))
export const url = given.url // ends in /v1
export const key = 'none'
export const folder = given.folder // for a client's own files
export const [first, second] = given.said // two messages of a person
export const [reply, nextReply] = given.replies // eliza's, as the server gave them to a plain request
export const picture = given.picture // a JPEG in base64
export const color = given.color // mmcq's answer to it
export const seed = 11

// `ask` must return `wanted`; `refused` is the status of a rightful refusal; `sends` must stand in each request.
export async function attempt(call, ask, { wanted = reply, refused = null, sends = {} } = {}) {
  const end = { call, refused, sends, requests: null }
  try {
    const got = await ask()
    if (wanted !== got) {
      end.wrong = `${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`
    }
  } catch (error) {
    console.error(error)
    end.error = `${error.name}: ${error.message}`
  }
  await fetch(given.ended, { method: 'POST', body: JSON.stringify(end) })
}

// The whole of a stream, which must have come in pieces.
export async function joined(pieces) {
  const texts = []
  for await (const piece of pieces) {
    if (piece) texts.push(piece)
  }
  if (texts.length < 2) throw new Error(`a stream of ${texts.length} pieces`)
  return texts.join('')
}
