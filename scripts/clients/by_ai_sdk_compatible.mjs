// AI SDK with @ai-sdk/openai-compatible.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { check } from './by_ai_sdk.mjs'
import { key, seed, url } from './calls.mjs'

await check(createOpenAICompatible({ name: 'turinglike', baseURL: url, apiKey: key }), { seed })
