"""Every machine by its name in ``card.settings``."""

from __future__ import annotations

from .direct_current_plants import ExtExDc, PermExDc, SeriesDc, ShuntDc
from .plant import Plant
from .three_phase_plants import DFIM, EESM, PMSM, SCIM, SixPhasePMSM, SynRM

PLANTS: dict[str, type[Plant]] = {
    plant.__name__: plant
    for plant in (PermExDc, ExtExDc, SeriesDc, ShuntDc, PMSM, SynRM, EESM, SixPhasePMSM, SCIM, DFIM)
}
