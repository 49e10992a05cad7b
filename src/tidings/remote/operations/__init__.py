"""Every operation of the API as a function from its arguments to a call. The clients have a method for each."""
