"""What the fields of forms and addresses may hold."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Form, Path
from pydantic import AfterValidator

# PostgreSQL keeps no NUL, and counts rows by 32 bits.
Text = Annotated[str, Form(), AfterValidator(lambda text: text.replace("\0", ""))]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
Cost = Annotated[float, Form(ge=0, le=1000, allow_inf_nan=False)]
Whole = Annotated[int, Form(ge=0, le=2**31 - 1)]
Moment = Annotated[str, Form(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d$")]
Choice = Annotated[Literal["accept", "decline", "tentative"], Form()]
