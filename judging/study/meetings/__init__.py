"""Two people, or a person and an agent, who talk."""
