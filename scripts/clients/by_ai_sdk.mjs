// AI SDK: what both of its providers for such a server have to do.
import { generateText, Output, streamText, tool, stepCountIs } from 'ai'
import { z } from 'zod'
import { attempt, color, first, joined, nextReply, picture, reply, second, seed } from './calls.mjs'

// `sends`: what of the options must reach the server.
export async function check (provider, sends) {
  const model = provider('eliza')
  const talk = [
    { role: 'user', content: first }, { role: 'assistant', content: reply }, { role: 'user', content: second },
  ]
  const image = { type: 'image', image: Buffer.from(picture, 'base64'), mediaType: 'image/jpeg' }
  const add = tool({ description: 'Adds.', inputSchema: z.object({ a: z.number() }), execute: async ({ a }) => a + 1 })
  const text = async (options) => (await generateText({ model, ...options })).text

  // A failure within a stream is told to onError alone.
  const streamed = async (options) => {
    let failure = null
    const stream = streamText({ model, ...options, onError: ({ error }) => { failure = error } })
    const pieces = []
    for await (const piece of stream.textStream) pieces.push(piece)
    if (failure) throw failure
    return joined(pieces)
  }

  const steps = async () => {
    const one = await generateText({ model, messages: talk.slice(0, 1) })
    return text({ messages: [talk[0], ...one.response.messages, talk[2]] })
  }

  await attempt('generateText', () => text({ prompt: first }))
  await attempt('streamText', () => streamed({ prompt: first }))
  await attempt('second turn', () => text({ messages: talk }), { wanted: nextReply })
  await attempt('second turn, stream', () => streamed({ messages: talk }), { wanted: nextReply })
  await attempt('messages handed back', steps, { wanted: nextReply })
  await attempt('system, options', () => text({ system: 'Be kind.', prompt: first, temperature: 0.5, maxOutputTokens: 50, seed }), { sends })
  await attempt('picture', () => text({ model: provider('mmcq'), messages: [{ role: 'user', content: [image] }] }), { wanted: color })
  await attempt('earlier picture', () => text({ messages: [{ role: 'user', content: [image, { type: 'text', text: first }] }, ...talk.slice(1)] }), { wanted: nextReply })
  await attempt('tools', () => text({ prompt: first, tools: { add }, stopWhen: stepCountIs(3) }))
  await attempt('tools required', () => text({ prompt: first, tools: { add }, toolChoice: 'required' }), { refused: 400 })
  await attempt('output object', async () => JSON.stringify((await generateText({ model, prompt: first, output: Output.object({ schema: z.object({ mood: z.string() }) }) })).output), { refused: 400 })
}
