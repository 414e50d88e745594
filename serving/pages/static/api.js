// Requests to the server that this page comes from, and what goes wrong with them, in words.
"use strict";

{
  const KEPT = "turinglike.key"; // of sessionStorage: this tab's, and gone with it

  let key = kept();

  function kept() {
    try {
      return sessionStorage.getItem(KEPT);
    } catch {
      return null; // storage may be forbidden; then the key lives as long as the page
    }
  }

  const hasKey = () => key !== null;

  const keyHeaders = () => (key === null ? {} : { authorization: `Bearer ${key}` });

  function setKey(text) {
    key = text;
    try {
      if (text === null) sessionStorage.removeItem(KEPT);
      else sessionStorage.setItem(KEPT, text);
    } catch {
      // as above
    }
  }

  /** Why there is no answer. `status` is HTTP's, 0 where there was no reply at all. */
  class Refusal extends Error {
    constructor(status, about, retryAfter = null) {
      super(about.message);
      this.status = status;
      this.code = about.code;
      this.requestId = about.request_id ?? null;
      this.problems = about.problems ?? [];
      this.retryAfter = retryAfter;
    }
  }

  /** The reply's text and its JSON, null if it is empty. Raises Refusal, or an AbortError where `signal` asks for it. */
  async function call(path, body = undefined, signal = undefined, method = body === undefined ? "GET" : "POST") {
    const headers = { accept: "application/json", ...keyHeaders() };
    if (body !== undefined) headers["content-type"] = "application/json";
    const sent = body === undefined ? undefined : JSON.stringify(body);
    let reply, text;
    try {
      const how = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
      reply = await fetch(path, { method, headers, body: sent, signal, ...how });
      text = await reply.text();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const size = (sent?.length ?? 0) / 2 ** 20;
      const large = size > 16 ? `, or it does not take a request of ${size.toFixed(0)} MiB` : "";
      throw new Refusal(0, { code: "unreachable", message: `the server cannot be reached${large}` });
    }
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      // told below
    }
    if (reply.ok && (value !== null || text === "")) return { text: text.trim(), value };
    const about = value?.error ?? { code: "unknown", message: `the server replied ${reply.status} and not in JSON` };
    about.request_id ??= reply.headers.get("x-request-id");
    throw new Refusal(reply.status, about, reply.headers.get("retry-after"));
  }

  /** A file's bytes as base64. */
  function base64(file) {
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
      reader.onerror = () =>
        reject(new Refusal(0, { code: "unreadable", message: `the file ${file.name} cannot be read any more` }));
      reader.readAsDataURL(file);
    });
  }

  Object.assign(Turinglike, { hasKey, keyHeaders, setKey, Refusal, call, base64 });
}
