from tests.assistant.ledger.fixtures import ledger, postgresql, url

__all__ = ["ledger", "postgresql", "url"]
