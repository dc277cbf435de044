"""What each call of a client gave, or its error: what a script prints."""

found = {}


def attempt(call, ask):
    """Makes a call; returns what it gave, or an empty dict."""
    try:
        found[call] = {"gave": ask()}
    except Exception as error:
        found[call] = {"error": f"{type(error).__name__}: {error}"}
    return found[call].get("gave") or {}


async def attempt_async(call, ask):
    """The same for a call that is awaited."""
    try:
        found[call] = {"gave": await ask()}
    except Exception as error:
        found[call] = {"error": f"{type(error).__name__}: {error}"}
    return found[call].get("gave") or {}
