"""Seasons of calendars: days within weeks."""

from __future__ import annotations

DAYS = 7
"""Days of a week: no other number of seasons makes a longer one in calendars that people work by."""
YEARS = (52, 365, 366)
"""Seasons that are years, of weeks or of days, and no days."""


def day_of(season: int) -> int:
    """Rounds of a day where the season is a week of days or a day; 0 where it is neither."""
    if season <= DAYS or season in YEARS:
        return 0
    return season // DAYS if season % DAYS == 0 else season


def with_weeks(season: int) -> tuple[int, ...]:
    """Rounds of a season and, where it is a week of days or a day, of both."""
    day = day_of(season)
    return (day, DAYS * day) if day else (season,)
