"""Every machine by its name in ``card.settings``."""

from __future__ import annotations

from rlbench_suite.core.task_card import TaskCard

from ..power_electronics.converter import CONVERTERS
from .direct_current import DirectCurrent, ExtExDc, PermExDc, SeriesDc, ShuntDc
from .induction_plant import DFIM, SCIM
from .plant import Plant
from .three_phase import EESM, PMSM, SixPhasePMSM, SynRM

DIRECT_CURRENT: dict[str, type[DirectCurrent]] = {
    plant.__name__: plant for plant in (PermExDc, ExtExDc, SeriesDc, ShuntDc)
}
PLANTS: dict[str, type[Plant]] = {
    **DIRECT_CURRENT,
    **{plant.__name__: plant for plant in (PMSM, SynRM, EESM, SixPhasePMSM, SCIM, DFIM)},
}


def plant_of(card: TaskCard) -> Plant:
    """Return the machine of a card, a direct-current one with the converter that is chosen for it.

    Raises:
        ValueError: other choices need a converter whose current reverses.
    """
    machine = card.settings["machine"]
    if machine not in DIRECT_CURRENT:
        return PLANTS[machine]()
    converter = CONVERTERS[card.settings["converter"]]
    if not converter.reverses:
        for name, allowed in (("interlocking", ("0",)), ("solver", ("rk4", "euler"))):
            if (value := card.settings[name]) not in allowed:
                raise ValueError(
                    f"{card.id}: {name} {value!r} is not for a converter with one switch and a "
                    f"diode; take {name} {' or '.join(map(repr, allowed))}, or converter '2qc'."
                )
    return DIRECT_CURRENT[machine](converter)
