// promptfoo, the command, with its three providers for OpenAI's interface.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt, first, folder, key, url } from './calls.mjs'

process.env.PROMPTFOO_DISABLE_TELEMETRY = '1'
process.env.PROMPTFOO_DISABLE_UPDATE = '1'
process.env.PROMPTFOO_CONFIG_DIR = folder

function evaluated (provider) {
  const config = {
    prompts: ['{{said}}'],
    providers: [{ id: provider, config: { apiBaseUrl: url, apiKey: key } }],
    tests: [{ vars: { said: first } }],
  }
  const [asked, got] = [join(folder, 'promptfooconfig.json'), join(folder, 'results.json')]
  writeFileSync(asked, JSON.stringify(config))
  rmSync(got, { force: true })
  const call = ['promptfoo', 'eval', '-c', asked, '--no-cache', '-o', got]
  const done = spawnSync('npx', ['--no-install', ...call], { encoding: 'utf8' })
  if (!existsSync(got)) throw new Error(done.error ?? done.stdout + done.stderr)
  const [result] = JSON.parse(readFileSync(got, 'utf8')).results.results
  if (result.error) throw new Error(result.error)
  return result.response.output
}

await attempt('openai:chat', async () => evaluated('openai:chat:eliza'))
await attempt('openai:responses', async () => evaluated('openai:responses:eliza'))
await attempt('openai:completion', async () => evaluated('openai:completion:eliza'))
