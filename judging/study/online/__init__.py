"""The online test, live: a judge asks two agents, who do not see each other, which of them is the human."""
