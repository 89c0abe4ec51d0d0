-- Rankings that an endpoint made, for minutes, so that another process does not pay again. Owner and call are digests that only
-- who has the master key can make; the body holds places and scores.
CREATE TABLE rankings (
    owner TEXT   NOT NULL,
    call  TEXT   NOT NULL,
    body  TEXT   NOT NULL,
    at    BIGINT NOT NULL,
    PRIMARY KEY (owner, call)
);

CREATE INDEX rankings_by_age ON rankings (at);
