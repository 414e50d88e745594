// openai for JavaScript.
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { attempt, color, first, joined, key, nextReply, picture, reply, second, seed, url } from './calls.mjs'

const client = new OpenAI({ baseURL: url, apiKey: key })
const user = { role: 'user', content: first }
const talk = [user, { role: 'assistant', content: reply }, { role: 'user', content: second }]
const image = { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${picture}` } }
const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object', properties: {} } } }]
const mood = zodResponseFormat(z.object({ mood: z.string() }), 'mood')

const chat = async (messages, options = {}) => {
  const answer = await client.chat.completions.create({ model: 'eliza', messages, ...options })
  return answer.choices[0].message.content
}

async function * deltas (options) {
  const chunks = await client.chat.completions.create({ model: 'eliza', messages: [user], stream: true, ...options })
  for await (const chunk of chunks) yield chunk.choices[0]?.delta.content
}

async function * responseDeltas () {
  const events = await client.responses.create({ model: 'eliza', input: first, stream: true })
  for await (const event of events) if (event.type === 'response.output_text.delta') yield event.delta
}

async function handedBack () {
  const answer = await client.chat.completions.create({ model: 'eliza', messages: [user] })
  return chat([user, answer.choices[0].message, talk[2]])
}

await attempt('models', async () => (await client.models.retrieve((await client.models.list()).data[0].id)).id, { wanted: 'eliza' })
await attempt('chat', () => chat([user]))
await attempt('stream', () => joined(deltas({ stream_options: { include_usage: true } })))
await attempt('stream helper', async () => (await client.chat.completions.stream({ model: 'eliza', messages: [user] }).finalContent()))
await attempt('second turn', () => chat(talk), { wanted: nextReply })
await attempt('message handed back', handedBack, { wanted: nextReply })
await attempt('options', () => chat([{ role: 'developer', content: 'Be kind.' }, user], { store: true, metadata: { a: 'b' }, service_tier: 'auto', reasoning_effort: 'low', seed }), { sends: { seed } })
await attempt('picture', () => chat([{ role: 'user', content: [image] }], { model: 'mmcq' }), { wanted: color })
await attempt('tools', () => chat([user], { tools }))
await attempt('tools required', () => chat([user], { tools, tool_choice: 'required' }), { refused: 400 })
await attempt('parse', async () => JSON.stringify(await client.chat.completions.parse({ model: 'eliza', messages: [user], response_format: mood })), { refused: 400 })
await attempt('responses', async () => (await client.responses.create({ model: 'eliza', input: first })).output_text)
await attempt('responses, stream', () => joined(responseDeltas()))
await attempt('responses, stream helper', async () => (await client.responses.stream({ model: 'eliza', input: first }).finalResponse()).output_text)
await attempt('completions', async () => (await client.completions.create({ model: 'eliza', prompt: first })).choices[0].text)
await attempt('embeddings', async () => JSON.stringify(await client.embeddings.create({ model: 'eliza', input: first })), { refused: 404 })
