"""The online test, live: a judge asks two agents, who do not see each other, and says which one is the human."""
