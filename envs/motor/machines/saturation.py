"""Flux linkages of a permanent-magnet synchronous machine with saturating iron.

The iron saturates along its axes and across them.

The currents are the gradient of a field energy W(psi_d, psi_q), so that reciprocity, d i_d / d
psi_q = d i_q / d psi_d, holds by construction and no cycle of currents makes energy:

    i_d = (a_d0 + a_dd |psi_d| + a_dq/3 |psi_q|^3) psi_d - i_m
    i_q = (a_q0 + a_qq |psi_q|^5 + a_dq/2 psi_d^2 |psi_q|) psi_q

Model: Hinkkanen, Pescetto, Moelsae, Saarakkala, Pellegrino & Bojoi 2017,
doi:10.1109/TIA.2016.2644624, with its exponents S = 5 on the axis of most iron (there d, here q), T
= 1 on that of the flux barriers, U = 1, V = 0. Magnets lie in those barriers: a constant current
i_m that drives the flux on their axis, the equivalent of a magnet of constant permeability. a_d0,
a_q0 and i_m are those with which currents near zero see given inductances and magnet flux.
"""

from __future__ import annotations

from typing import NamedTuple

from .frames import DQ, Scalar

NEWTON_STEPS = 6
"""Number of Newton steps of :meth:`Saturation.flux`.

They leave no error in float64, for currents up to 400 A (tested).
"""


class Saturation(NamedTuple):
    """A machine's coefficients; every function holds for arrays too."""

    d0: Scalar
    """a_d0, 1/H"""
    q0: Scalar
    """a_q0, 1/H"""
    dd: Scalar
    """a_dd, A / (V s)^2"""
    qq: Scalar
    """a_qq, A / (V s)^6"""
    dq: Scalar
    """a_dq, A / (V s)^4"""
    magnets: Scalar
    """i_m, A"""

    def with_magnets(self, magnet_flux: Scalar) -> Saturation:
        """Return the same iron with magnets that make this flux (V s) without currents."""
        return self._replace(magnets=(self.d0 + self.dd * abs(magnet_flux)) * magnet_flux)

    def current(self, flux: DQ) -> DQ:
        """Return the currents, A, of flux linkages, V s."""
        x, y = flux
        along = abs(y)
        return DQ(
            (self.d0 + self.dd * abs(x) + self.dq / 3 * along**3) * x - self.magnets,
            (self.q0 + self.qq * along**5 + self.dq / 2 * x * x * along) * y,
        )

    def stiffness(self, flux: DQ) -> tuple[Scalar, Scalar, Scalar]:
        """Return d i_d / d psi_d, d i_d / d psi_q = d i_q / d psi_d, and d i_q / d psi_q, 1/H."""
        x, y = flux
        along = abs(y)
        return (
            self.d0 + 2 * self.dd * abs(x) + self.dq / 3 * along**3,
            self.dq * x * y * along,
            self.q0 + 6 * self.qq * along**5 + self.dq * x * x * along,
        )

    def inductances(self, flux: DQ) -> tuple[Scalar, Scalar, Scalar]:
        """Return the differential inductances L_dd, L_dq = L_qd and L_qq, H.

        Their matrix is the inverse of :meth:`stiffness`.
        """
        dd, dq, qq = self.stiffness(flux)
        determinant = dd * qq - dq * dq
        return qq / determinant, -dq / determinant, dd / determinant

    def flux(self, current: DQ) -> DQ:
        """Return the flux linkages, V s, of currents, A.

        It inverts :meth:`current` by Newton's method.
        """
        along = abs(current.q) / self.q0
        y = current.q / self.q0 / (1 + self.qq / self.q0 * along**5) ** (1 / 6)
        x = (current.d + self.magnets) / (self.d0 + self.dq / 3 * abs(y) ** 3)
        for _ in range(NEWTON_STEPS):
            computed = self.current(DQ(x, y))
            off_d, off_q = current.d - computed.d, current.q - computed.q
            dd, dq, qq = self.inductances(DQ(x, y))
            x, y = x + dd * off_d + dq * off_q, y + dq * off_d + qq * off_q
        return DQ(x, y)

    def energy(self, flux: DQ) -> Scalar:
        """Return the energy of the field, J, with magnets included up to a constant.

        Its gradient is 3/2 of the currents.
        """
        x, y = flux
        along = abs(y)
        axes_energy = (
            self.d0 / 2 * x * x
            + self.dd / 3 * abs(x) ** 3
            + self.q0 / 2 * y * y
            + self.qq / 7 * along**7
        )
        return 1.5 * (axes_energy + self.dq / 6 * x * x * along**3 - self.magnets * x)


def saturation_of(
    inductance_d: Scalar, inductance_q: Scalar, magnet_flux: Scalar, iron: Iron
) -> Saturation:
    """Return the machine with these inductances (H) and magnet flux (V s) near zero current."""
    d0 = 1 / inductance_d - 2 * iron.dd * magnet_flux
    return Saturation(d0, 1 / inductance_q, iron.dd, iron.qq, iron.dq, 0.0).with_magnets(
        magnet_flux
    )


class Iron(NamedTuple):
    """Strength of the iron's saturation; the defaults suit an interior-magnet machine of 50 kW.

    They take L_q from 1.2 mH to an average of some 0.65 mH at 240 A, and 10 % of the flux along the
    magnets with it: of the size that maps of interior-magnet machines show (Bianchi & Bolognani
    1998, Magnetic models of saturated interior permanent magnet motors, IEEE IAS Annual Meeting),
    not one machine's own.
    """

    dd: Scalar = 3.0e3
    """a_dd, A / (V s)^2"""
    qq: Scalar = 6.4e6
    """a_qq, A / (V s)^6"""
    dq: Scalar = 2.0e5
    """a_dq, A / (V s)^4"""
