"""What a person does with tasks: lets those that failed for good start anew, and cancels those that wait."""
