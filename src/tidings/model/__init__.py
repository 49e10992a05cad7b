"""The words, in the order of the flow: event → route → subscription → saga → job → dead letter; task beside them."""
