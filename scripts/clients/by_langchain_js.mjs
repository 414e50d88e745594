// LangChain for JavaScript.
import { AIMessage, HumanMessage, SystemMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { createAgent } from 'langchain'
import { z } from 'zod'
import { attempt, color, first, joined, key, nextReply, picture, reply, second, url } from './calls.mjs'

const chat = (model = 'eliza', options = {}) =>
  new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: url }, ...options })
const add = tool(async ({ a, b }) => a + b, { name: 'add', description: 'Adds.', schema: z.object({ a: z.number(), b: z.number() }) })
const eliza = chat()
const responses = chat('eliza', { useResponsesApi: true })
const talk = [new SystemMessage('Be kind.'), new HumanMessage(first), new AIMessage(reply), new HumanMessage(second)]

async function * pieces (model) {
  for await (const chunk of await model.stream(first)) yield chunk.text
}

const shown = async (message) => (await chat('mmcq').invoke([new HumanMessage(message)])).text

async function byAgent (tools) {
  const agent = createAgent({ model: eliza, tools, systemPrompt: 'Be kind.' })
  const one = await agent.invoke({ messages: [new HumanMessage(first)] })
  const two = await agent.invoke({ messages: [...one.messages, new HumanMessage(second)] })
  return two.messages.at(-1).text
}

await attempt('invoke', async () => (await eliza.invoke(first)).text)
await attempt('stream', () => joined(pieces(eliza)))
await attempt('second turn', async () => (await eliza.invoke(talk)).text, { wanted: nextReply })
await attempt('image_url', () => shown({ content: [{ type: 'image_url', image_url: { url: `data:image/jpeg;base64,${picture}` } }] }), { wanted: color })
await attempt('image block', () => shown({ contentBlocks: [{ type: 'image', data: picture, mimeType: 'image/jpeg' }] }), { wanted: color })
await attempt('createAgent', () => byAgent([]), { wanted: nextReply })
await attempt('createAgent with tools', () => byAgent([add]), { wanted: nextReply })
await attempt('bindTools', async () => (await eliza.bindTools([add]).invoke(first)).text)
await attempt('bindTools, any', async () => (await eliza.bindTools([add], { tool_choice: 'any' }).invoke(first)).text, { refused: 400 })
await attempt('withStructuredOutput', async () => JSON.stringify(await eliza.withStructuredOutput(z.object({ mood: z.string() })).invoke(first)), { refused: 400 })
await attempt('useResponsesApi', async () => (await responses.invoke(first)).text)
await attempt('useResponsesApi, stream', () => joined(pieces(responses)))
await attempt('useResponsesApi, second turn', async () => (await responses.invoke(talk)).text, { wanted: nextReply })
