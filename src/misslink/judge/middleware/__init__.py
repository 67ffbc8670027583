"""Wrappers around a judge: each is a judge that calls another one."""

from __future__ import annotations
