// The same by program: what was asked on the page, for curl, for Python, and for OpenAI's package.
"use strict";

{
  const { copier, el, hasKey, json } = Turinglike;

  const KEY = "TURINGLIKE_API_KEY"; // the programs take the key from the environment; the key itself is never shown
  const OPENED = `sed 's/.*"id": *"\\([0-9a-f]*\\)".*/\\1/'`; // the id in the reply to a conversation's beginning

  const address = (path) => new URL(path, document.baseURI).href;

  // in the shell

  /** A text as one word of a shell. */
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

  /** A value as JSON in a here-document, in which a shell reads the signs \ $ ` as its own. */
  const hereJson = (value) => JSON.stringify(value).replace(/[\\$`]/g, "\\$&");

  /** The command that prints a picture's bytes. */
  const printed = ({ address: from, name }) =>
    from === null ? `cat ${quoted(`./${name}`)}` : `curl -sS ${quoted(from)}`;

  /** A curl command that posts `body`, with the bytes of `pictures` under `images`. The body comes from a
   * here-document: Linux takes no argument above 128 KiB, and a picture may be larger. */
  function posting(url, body, pictures = {}, then = "") {
    const members = Object.entries(body).map(([name, value]) => `"${name}": ${hereJson(value)}`);
    const images = Object.entries(pictures).map(
      ([name, picture]) => `"${name}": "$(${printed(picture)} | base64 | tr -d '\\n')"`,
    );
    if (images.length) members.push(`"images": {${images.join(", ")}}`);
    const key = hasKey() ? ` -H "authorization: Bearer $${KEY}"` : "";
    const head = `curl -sS ${url} -H 'content-type: application/json'${key} --data-binary @- <<END${then}`;
    return `${head}\n{${members.join(", ")}}\nEND`;
  }

  const curlAnswer = ({ body, pictures }) => posting(quoted(address("answers")), body, pictures);

  function curlTalk({ body, said }) {
    const opening = posting(quoted(address("conversations")), body, {}, ` | ${OPENED}`);
    const messages = said.map((text) => posting(`"${address("conversations/")}$id/messages" -w '\\n'`, { text }));
    return [`id=$(${opening}\n)`, ...messages].join("\n");
  }

  // in Python

  /** A JSON value as Python writes it. */
  function python(value) {
    if (value === null) return "None";
    if (value === true) return "True";
    if (value === false) return "False";
    if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
    if (typeof value !== "object") return JSON.stringify(value);
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${python(member)}`);
    return `{${members.join(", ")}}`;
  }

  const imports = (...names) => names.filter((name) => name).map((name) => `import ${name}`);

  const fromEnvironment = `os.environ["${KEY}"]`;

  /** Lines that read the pictures, each as base64 in a variable of its field's name. */
  function reading(pictures) {
    return Object.entries(pictures).flatMap(([name, { address: from, name: file }]) => {
      const opened = from === null ? `open(${python(file)}, "rb")` : `urllib.request.urlopen(${python(from)})`;
      return [`with ${opened} as file:`, `    ${name} = base64.b64encode(file.read()).decode()`];
    });
  }

  function headers() {
    const key = hasKey() ? `, "authorization": "Bearer " + ${fromEnvironment}` : "";
    return `headers = {"content-type": "application/json"${key}}`;
  }

  function pythonAnswer({ body, pictures }) {
    const names = Object.keys(pictures);
    const lines = [
      ...imports(names.length && "base64", "json", hasKey() && "os", "urllib.request"),
      "",
      ...reading(pictures),
      `asked = ${python(body)}`,
    ];
    if (names.length) lines.push(`asked["images"] = {${names.map((name) => `"${name}": ${name}`).join(", ")}}`);
    lines.push(
      headers(),
      `request = urllib.request.Request(${python(address("answers"))}, json.dumps(asked).encode(), headers)`,
      "with urllib.request.urlopen(request) as reply:",
      "    record = json.load(reply)",
      'print(json.dumps(record["answer"] or record["error"], indent=2))',
    );
    return lines.join("\n");
  }

  function pythonTalk({ body, said }) {
    return [
      ...imports("json", hasKey() && "os", "urllib.request"),
      "",
      headers(),
      "",
      "def post(path, asked):",
      `    request = urllib.request.Request(${python(address(""))} + path, json.dumps(asked).encode(), headers)`,
      "    with urllib.request.urlopen(request) as reply:",
      "        return json.load(reply)",
      "",
      `talk = post("conversations", ${python(body)})`,
      `for text in ${python(said)}:`,
      '    reply = post(f"conversations/{talk[\'id\']}/messages", {"text": text})',
      '    print(reply["messages"][-1]["text"])',
    ].join("\n");
  }

  // by OpenAI's package

  const openaiClient = () =>
    `client = openai.OpenAI(base_url=${python(address("v1"))}, api_key=${hasKey() ? fromEnvironment : '"none"'})`;

  function creating(body, messages, stimulus, indent = "") {
    const lines = [
      "answer = client.chat.completions.create(",
      `    model=${python(body.agent)},`,
      body.seed !== undefined && `    seed=${body.seed},`,
      `    messages=${messages},`,
      `    extra_body={"stimulus": ${python(stimulus)}},`,
      ")",
    ];
    return lines.filter((line) => line).map((line) => indent + line);
  }

  /** Null for what a request of OpenAI's form cannot ask: another sample than the first, and a second picture. */
  function openaiAnswer({ body, pictures }) {
    const names = Object.keys(pictures);
    const { cue, ...stimulus } = body.stimulus;
    if (body.sample > 0 || names.some((name) => name !== "image")) return null;
    const content = names.length ? "[picture]" : python(cue);
    const isFetched = names.length && pictures.image.address !== null;
    const start = `"data:${pictures.image?.type || "application/octet-stream"};base64," + image`;
    return [
      ...imports(names.length && "base64", hasKey() && "os", isFetched && "urllib.request"),
      "",
      "import openai",
      "",
      openaiClient(),
      ...reading(pictures),
      ...(names.length ? [`picture = {"type": "image_url", "image_url": {"url": ${start}}}`] : []),
      ...creating(body, `[{"role": "user", "content": ${content}}]`, stimulus),
      "print(answer.choices[0].message.content)",
    ].join("\n");
  }

  /** Null for a talk in which the person is B: there the user is A. */
  function openaiTalk({ body, begun, said }) {
    const { agent, id, exchanges, person, names, topic } = { ...body, ...begun, id: body.id };
    if (person !== "A") return null;
    const before = begun.messages.map((message) => ({ role: "assistant", content: message.text }));
    return [
      ...imports(hasKey() && "os", "openai"),
      "",
      openaiClient(),
      `messages = ${python(before)}`,
      `for text in ${python(said)}:`,
      '    messages.append({"role": "user", "content": text})',
      ...creating({ ...body, agent }, "messages", { id, topic, names, exchanges }, "    "),
      "    reply = answer.choices[0].message.content",
      '    messages.append({"role": "assistant", "content": reply})',
      "    print(reply)",
    ].join("\n");
  }

  // on the page

  /** The programs' lines, which are for what is called `name`. */
  function blocks(name, curl, lines, openai) {
    const named = { curl, Python: lines, openai };
    const block = ([program, text]) => [
      el("div.line", copier(`Copy the ${program} lines`, () => text)),
      json(text, `The ${program} lines for ${name}`),
    ];
    return el("div.programs", Object.entries(named).filter(([, text]) => text !== null).map(block));
  }

  /** Programs that ask the same as `question`: the posted body without its images, and where these are. */
  const answerPrograms = (question) =>
    blocks(
      `${question.body.agent} and ${question.body.stimulus.id}`,
      curlAnswer(question),
      pythonAnswer(question),
      openaiAnswer(question),
    );

  /** Programs that open the same conversation and say the same: the posted `body`, what had `begun` then, and what was
   * `said` since. */
  const talkPrograms = (talk) => blocks(talk.body.agent, curlTalk(talk), pythonTalk(talk), openaiTalk(talk));

  Object.assign(Turinglike, { answerPrograms, talkPrograms });
}
