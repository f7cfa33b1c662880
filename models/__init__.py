"""Who answers: one file per oracle, all behind `models.oracle`."""
