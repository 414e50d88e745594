"""LlamaIndex's OpenAILike: as it comes (/v1/completions), and as a chat model."""

from calls import FIRST, KEY, NEXT_REPLY, REPLY, SECOND, URL, attempt, joined
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

plain = OpenAILike(model="eliza", api_base=URL, api_key=KEY)
chat = OpenAILike(model="eliza", api_base=URL, api_key=KEY, is_chat_model=True)
talk = [
    ChatMessage(role="system", content="Be kind."),
    ChatMessage(role="user", content=FIRST),
    ChatMessage(role="assistant", content=REPLY),
    ChatMessage(role="user", content=SECOND),
]

attempt("complete", lambda: plain.complete(FIRST).text)
attempt("stream_complete", lambda: joined(piece.delta for piece in plain.stream_complete(FIRST)))
attempt("chat by completions", lambda: plain.chat(talk[1:]).message.content, None)
attempt("chat model: chat", lambda: chat.chat(talk[1:2]).message.content)
attempt("chat model: second turn", lambda: chat.chat(talk).message.content, NEXT_REPLY)
attempt("chat model: stream", lambda: joined(piece.delta for piece in chat.stream_chat(talk)), NEXT_REPLY)
attempt("chat model: complete", lambda: chat.complete(FIRST).text)
