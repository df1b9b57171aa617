"""The ledger: every request, feature row, decision, reply and correction, in SQLite or PostgreSQL."""
