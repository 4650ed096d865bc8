CREATE TABLE meta (version int NOT NULL, initial text NOT NULL, arm text, counts text NOT NULL);
CREATE TABLE initial (number bigint PRIMARY KEY, id text COLLATE "C" NOT NULL, same bigint NOT NULL, line text NOT NULL);
CREATE TABLE links (target text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY (target, number));
CREATE TABLE carried (origin text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY (origin, number));
CREATE TABLE trace (seq bigint PRIMARY KEY, iteration bigint NOT NULL, client text NOT NULL, line text NOT NULL);
