-- One server, two databases: Prefect's own is POSTGRES_DB, this is the store of all answers.
CREATE DATABASE twothirds;
