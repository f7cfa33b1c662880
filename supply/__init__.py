"""What is installed: exact versions with the hashes of their files, and under which licences they are."""
