"""Conversations over the scheduler: two agents, or a person and an agent."""
