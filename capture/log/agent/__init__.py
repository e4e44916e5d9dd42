"""Captures on request of another host: the messages, the client, and the server of an agent."""
