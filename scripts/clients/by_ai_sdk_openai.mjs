// AI SDK with @ai-sdk/openai, as it comes: it asks /v1/responses.
import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'
import { check } from './by_ai_sdk.mjs'
import { attempt, first, key, url } from './calls.mjs'

const openai = createOpenAI({ baseURL: url, apiKey: key })
await check(openai, {}) // the responses that OpenAI offers have no seed
await attempt('openai.chat', async () => (await generateText({ model: openai.chat('eliza'), prompt: first })).text)
await attempt('openai.completion', async () => (await generateText({ model: openai.completion('eliza'), prompt: first })).text)
