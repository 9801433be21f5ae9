"""Human motion from formulas: bones of constant length, feet that do not slide, everything parametrised and seeded."""
