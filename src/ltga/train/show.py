"""A finished run as people look at it in a notebook: a line, a small table."""

from __future__ import annotations

from html import escape

from ltga.train.record import Record, headline_score, kept_index

NOT_SHARES = ("nll", "brier", "ece", "loss")
ERRORS = ("mae", "rmse", "log_mae", "log_rmse")  # lower is better, in units of the target


def shown(metric: str, value: float | None) -> str:
    """A score as tables print it: shares in per cent, errors in their units, R2 as it is.

    >>> shown("accuracy", 0.8512), shown("mae", 213275.94), shown("r2", 0.5), shown("mrr", None)
    ('85.1', '213,276', '0.500', '')
    >>> shown("rmse", 1234.5), shown("rmse", 0.66249), shown("log_mae", 0.00012345)
    ('1,234', '0.6625', '0.0001234')
    >>> shown("nll", 0.68), shown("ece", 0.1)
    ('0.680', '0.100')
    """
    if value is None:
        return ""
    if metric in ERRORS:
        return number(value)
    return f"{100 * value:.1f}" if _is_share(metric) else f"{value:.3f}"


def with_unit(metric: str, value: float | None) -> str:
    """The same where no heading says that shares are in per cent.

    >>> with_unit("mrr", 0.208), with_unit("mae", 13140.2), with_unit("r2", None)
    ('20.8 %', '13,140', '')
    """
    return shown(metric, value) + (" %" if value is not None and _is_share(metric) else "")


def number(value: float) -> str:
    """A number with about four digits; whole from a thousand on, as tables of errors have it.

    >>> number(321567.5), number(-0.123456)
    ('321,568', '-0.1235')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _is_share(metric: str) -> bool:
    return metric not in (*ERRORS, *NOT_SHARES) and not metric.endswith("r2")


def summary(record: Record) -> str:
    """Score, best epoch and short id.

    >>> record = {"id": "1c556dcb" * 8, "metrics": {"val": {"accuracy": 0.5}}, "best_epoch": 3, "epochs": 9}
    >>> summary(record)
    'val accuracy 50.0 %, best epoch 3 of 9, id 1c556dcb'
    """
    part, metric, score = headline_score(record)
    value = with_unit(metric, score)
    kept = f"best epoch {record['best_epoch']} of {record['epochs']}"
    return f"{part} {metric} {value or 'unknown'}, {kept}, id {record['id'][:8]}"


def html_table(record: Record) -> str:
    """The run as a small HTML table; everything in it is escaped."""
    config = record["config"]
    part, metric, _ = headline_score(record)
    rows = [("graph", config["dataset"]["name"]), ("method", config["method"]), ("seed", config["seed"])]
    rows += [
        (f"{part} {name}{' (chosen by)' if name == metric and record.get('metric') else ''}", number(value))
        for name, value in record["metrics"][part].items()
        if value is not None
    ]
    for at, layer in enumerate(kept_index(record), start=1):
        means = [value for value in layer.get("mean", []) if value is not None]
        if means:
            rows.append((f"index of layer {at}", " ".join(f"{value:.2f}" for value in means)))
    rows += [("best epoch", f"{record['best_epoch']} of {record['epochs']}"), ("id", record["id"][:8])]
    cells = "".join(f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"
