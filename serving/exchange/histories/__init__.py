"""Messengers' exports: a person's chat history for an agent that writes as the person does, or conversations."""
