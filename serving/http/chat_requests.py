"""The body of ``POST /v1/chat/completions``."""

from pydantic import Field

from serving.http.openai_messages import Message, read_history
from serving.http.openai_options import ChoiceOptions
from serving.http.question import Question

MOST_MESSAGES = 1000


class ChatRequest(ChoiceOptions):
    """The next message of a chat, the answer to an image, or a word that goes with another. Other options of OpenAI's
    interface have no effect."""

    messages: list[Message] = Field(
        min_length=1, max_length=MOST_MESSAGES, examples=[[{"role": "user", "content": "I like books."}]]
    )
    """The last message is the user's. It may show one image; images of earlier messages have no effect."""

    def question(self) -> Question:
        """What the request asks an agent. Raises ApiError for what no agent can answer."""
        self.check_options()
        history = read_history("messages", self.messages)
        return Question(
            model=self.model,
            place="messages",
            history=history,
            ignored=self.ignored_options() + history.ignored,
            fields=self.stimulus,
            seed=self.seed,
            count=self.n or 1,
            stop=self.stop,
        )
