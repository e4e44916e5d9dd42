"""When a heartbeat is due: modes, and demands of stream readers."""
