"""The rescuer: takes tasks back from workers that went silent, as a consumed retry."""
