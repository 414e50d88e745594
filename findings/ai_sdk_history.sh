#!/usr/bin/env bash
set -euo pipefail
# Package: ai 6.0.326 and @ai-sdk/openai 3.0.141 from npm, asking a server of OpenAI's responses on this machine.
# Found: a conversation that goes on is sent without the words of the assistant, also to a server that stores nothing.
# Expected: the server answers "store": false, so the next request has the text of its first answer.
# Seen: it has {"type":"item_reference","id":"msg_1"} in the text's place, whatever the baseURL and the answer's "store".
#   With providerOptions {openai: {store: false}} in each request the text is sent.
# Source: OpenAI's reference of responses: an item_reference is the id of an item that the server has stored.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes > /dev/null
npm install --silent --no-audit --no-fund --save-exact ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4.1.12
cat > try.mjs <<'JS'
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";

const require = createRequire(import.meta.url);
console.log("ai", require("ai/package.json").version, "@ai-sdk/openai", require("@ai-sdk/openai/package.json").version);

const inputs = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  inputs.push(JSON.parse(body).input);
  const content = [{ type: "output_text", text: "So you like tea.", annotations: [] }];
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({
    id: "resp_1", object: "response", created_at: 1, status: "completed", model: "any", store: false,
    output: [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content }],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  }));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const openai = createOpenAI({ baseURL: `http://127.0.0.1:${server.address().port}/v1`, apiKey: "none" });

const seen = {};
for (const [name, options] of Object.entries({ default: {}, "store: false": { openai: { store: false } } })) {
  const messages = [{ role: "user", content: "I like tea." }];
  const more = { model: openai("any"), messages, providerOptions: options, maxRetries: 0 };
  const answer = await generateText(more);
  messages.push(...answer.response.messages, { role: "user", content: "And rain." });
  await generateText(more);
  seen[name] = JSON.stringify(inputs.at(-1)[1]);
  console.log(`${name}: the second of three items is ${seen[name]}`);
}
server.close();
const isFound = seen.default === '{"type":"item_reference","id":"msg_1"}' && seen["store: false"].includes("So you like tea.");
if (!isFound) {
  console.error("changed");
  process.exit(1);
}
process.exit(0);
JS
node try.mjs
