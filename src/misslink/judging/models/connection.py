"""One attempt a call to an OpenAI-compatible server, through the official client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from misslink.errors import JudgeUnreachableError
from misslink.judging.models.address import Address
from misslink.judging.models.outage import why_pointless
from misslink.judging.models.reading import EXCERPT, read_body

if TYPE_CHECKING:
    import openai

__all__ = ["REFUSALS", "Connection"]

REFUSALS = (400, 422, 501)  # this request will not do; worded otherwise it may
_NO_ENTRY = 401
_CONNECT_S = 30.0
_LISTING_S = 10.0
_RAW = {"X-Stainless-Raw-Response": "true"}  # how the client is asked not to parse what it gets


class Connection:
    """The way to a server; opened by the first request.

    How long to wait for a reply is for whoever asks to say: a cancelled request leaves the
    server at once.

    Parameters
    ----------
    judge, model : str
        For messages.
    address : Address

    Attributes
    ----------
    judge, shown : str
        Its name, and the address, fit to be shown.
    sent : int
        Requests to a model since opening.
    """

    def __init__(self, judge: str, model: str, address: Address) -> None:
        self.sent = 0
        self.judge = judge
        self.shown = address.shown
        self._model = model
        self._address = address
        self._opened: openai.AsyncOpenAI | None = None
        self._answered = False

    async def post(self, path: str, body: Mapping[str, Any]) -> str:
        """Send a request; return the body of the answer, which need not be what it should be.

        Raises
        ------
        openai.APIError
            The server did not answer with success.
        """
        client = self.client()
        self.sent += 1
        answer: Any = await client.post(path, cast_to=object, body=body, options={"headers": _RAW})
        self._answered = True
        return self.text(answer)

    async def models(self) -> Any:
        """Return the server's list of models; None where it has none.

        Raises
        ------
        JudgeUnreachableError
            Nobody answers, or the key is refused.
        """
        import openai

        options: Any = {"headers": _RAW, "timeout": _LISTING_S}
        try:
            answer: Any = await self.client().get("/models", cast_to=object, options=options)
        except openai.PermissionDeniedError as error:
            # A key that may ask but not list models is refused here for its scope alone.
            if "scope" not in str(error).lower():
                self.raise_if_pointless(error)
        except (openai.AuthenticationError, openai.APIConnectionError) as error:
            self.raise_if_pointless(error)
        except openai.APIStatusError:
            return None  # many servers do not list their models
        else:
            return read_body(self.text(answer))
        return None

    def raise_if_pointless(self, error: openai.APIError) -> None:
        """Raise JudgeUnreachableError where no other question would fare better."""
        why = why_pointless(error, self.said(error), self._model, answered=self._answered)
        if getattr(error, "status_code", None) == _NO_ENTRY and self._address.keyless:
            why = "it asks for a key (401) and none was given; set OPENAI_API_KEY"
        if why:
            raise self.unreachable(why) from None

    def unreachable(self, why: str) -> JudgeUnreachableError:
        """Return the error that says why this judge cannot be asked."""
        return JudgeUnreachableError(
            f"the judge {self.judge} at {self.shown} cannot be asked: {why}"
        )

    def said(self, error: openai.APIError) -> str:
        """A server's complaint in its own words, shortened, without the key."""
        detail = error.body.get("message") if isinstance(error.body, dict) else None
        return self.censored(str(detail or error.message))[:EXCERPT]

    def censored(self, text: str) -> str:
        """Return `text` without the key."""
        return self._address.censored(text)

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def client(self) -> openai.AsyncOpenAI:
        """Return the official client, which makes one attempt a call."""
        if self._opened is None:
            import openai

            self._opened = openai.AsyncOpenAI(
                api_key=self._address.key,
                base_url=self._address.base_url,
                timeout=openai.Timeout(None, connect=_CONNECT_S),
                max_retries=0,
            )
        return self._opened

    def text(self, answer: Any) -> str:
        """Return the body of an answer that the client was asked not to parse, without the key."""
        content: bytes = answer.http_response.content
        return self.censored(content.decode("utf-8", "replace"))
