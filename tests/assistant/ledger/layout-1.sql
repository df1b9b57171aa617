BEGIN TRANSACTION;
CREATE TABLE askings (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DATETIME NOT NULL, 
	why VARCHAR(16) NOT NULL
);
CREATE TABLE cancellations (
	id INTEGER NOT NULL, 
	user VARCHAR(320) NOT NULL, 
	uid VARCHAR NOT NULL, 
	recurrence_id VARCHAR NOT NULL, 
	organiser VARCHAR NOT NULL, 
	sequence INTEGER NOT NULL, 
	stamp DATETIME, 
	received_at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (user, uid, recurrence_id, organiser), 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE
);
CREATE TABLE contacts (
	id INTEGER NOT NULL, 
	user VARCHAR(320) NOT NULL, 
	kind VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	job VARCHAR NOT NULL, 
	relation VARCHAR NOT NULL, 
	importance VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (user, kind, "key"), 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE
);
CREATE TABLE decisions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	request_id INTEGER NOT NULL, 
	made_at DATETIME NOT NULL, 
	action VARCHAR(8) NOT NULL, 
	probability DOUBLE, 
	expected_losses JSON NOT NULL, 
	reasons JSON NOT NULL, 
	kin JSON NOT NULL, 
	model_id INTEGER, 
	shadow BOOLEAN NOT NULL, 
	FOREIGN KEY(request_id) REFERENCES requests (id) ON DELETE CASCADE
);
INSERT INTO "decisions" VALUES(1,1,'2026-03-02 09:00:00.000000','accept',0.9,'{}','[]','[]',NULL,1);
CREATE TABLE deeds (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	user VARCHAR(320) NOT NULL, 
	at DATETIME NOT NULL, 
	"by" VARCHAR(9) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	request_id INTEGER, 
	text TEXT NOT NULL, 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE, 
	FOREIGN KEY(request_id) REFERENCES requests (id) ON DELETE CASCADE
);
CREATE TABLE entries (
	id INTEGER NOT NULL, 
	user VARCHAR(320) NOT NULL, 
	uid VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	href VARCHAR NOT NULL, 
	etag VARCHAR NOT NULL, 
	seen_at DATETIME NOT NULL, 
	gone_at DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (user, uid), 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE
);
INSERT INTO "entries" VALUES(1,'ann@example.org','e1','','','','2026-03-02 09:00:00.000000',NULL);
CREATE TABLE layout (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "layout" VALUES(1);
CREATE TABLE leases (
	name VARCHAR(32) NOT NULL, 
	holder VARCHAR(64) NOT NULL, 
	until DATETIME, 
	PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('models','',NULL);
CREATE TABLE models (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	owner VARCHAR(320), 
	made_at DATETIME NOT NULL, 
	n_rows INTEGER NOT NULL, 
	users JSON NOT NULL, 
	archive BLOB NOT NULL, 
	FOREIGN KEY(owner) REFERENCES users (address) ON DELETE CASCADE
);
CREATE TABLE replies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	request_id INTEGER NOT NULL, 
	once INTEGER, 
	"by" VARCHAR(9) NOT NULL, 
	answer VARCHAR(12) NOT NULL, 
	text TEXT NOT NULL, 
	state VARCHAR(10) NOT NULL, 
	made_at DATETIME NOT NULL, 
	due_at DATETIME NOT NULL, 
	sent_at DATETIME, 
	attempts INTEGER NOT NULL, 
	held_until DATETIME, 
	error TEXT NOT NULL, 
	FOREIGN KEY(request_id) REFERENCES requests (id) ON DELETE CASCADE, 
	UNIQUE (once)
);
INSERT INTO "replies" VALUES(1,1,NULL,'user','ACCEPTED','','sent','2026-03-02 09:00:00.000000','2026-03-02 09:00:00.000000',NULL,0,NULL,'');
CREATE TABLE requests (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	user VARCHAR(320) NOT NULL, 
	uid VARCHAR NOT NULL, 
	recurrence_id VARCHAR NOT NULL, 
	sequence INTEGER NOT NULL, 
	stamp DATETIME, 
	received_at DATETIME NOT NULL, 
	organiser VARCHAR NOT NULL, 
	organiser_name VARCHAR NOT NULL, 
	summary TEXT NOT NULL, 
	location TEXT NOT NULL, 
	starts_at DATETIME NOT NULL, 
	ends_at DATETIME NOT NULL, 
	all_day BOOLEAN NOT NULL, 
	text TEXT NOT NULL, 
	source VARCHAR NOT NULL, 
	source_ref VARCHAR NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	features JSON, 
	unknown JSON, 
	label VARCHAR(8), 
	UNIQUE (user, uid, recurrence_id, sequence), 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE
);
INSERT INTO "requests" VALUES(1,'ann@example.org','m1','',0,NULL,'2026-03-02 09:00:00.000000','boss@example.org','','','','2026-03-02 09:00:00.000000','2026-03-02 09:00:00.000000',0,'','mail','','open','{"conflict": "no"}','{}',NULL);
CREATE TABLE sessions (
	token_hash VARCHAR(64) NOT NULL, 
	user VARCHAR(320) NOT NULL, 
	csrf VARCHAR NOT NULL, 
	expires_at DATETIME NOT NULL, 
	PRIMARY KEY (token_hash), 
	FOREIGN KEY(user) REFERENCES users (address) ON DELETE CASCADE
);
CREATE TABLE users (
	address VARCHAR(320) NOT NULL, 
	name VARCHAR NOT NULL, 
	password_hash VARCHAR, 
	zone VARCHAR NOT NULL, 
	places TEXT NOT NULL, 
	agreed_at DATETIME, 
	automation BOOLEAN NOT NULL, 
	daily_cap INTEGER NOT NULL, 
	undo_minutes INTEGER NOT NULL, 
	cost_false_accept DOUBLE NOT NULL, 
	cost_false_decline DOUBLE NOT NULL, 
	cost_ask DOUBLE NOT NULL, 
	made_at DATETIME NOT NULL, 
	PRIMARY KEY (address)
);
INSERT INTO "users" VALUES('ann@example.org','Ann',NULL,'Europe/Berlin','','2026-03-02 09:00:00.000000',1,10,10,1.0,1.0,0.1,'2026-03-02 09:00:00.000000');
CREATE INDEX ix_sessions_user ON sessions (user);
CREATE INDEX ix_contacts_user ON contacts (user);
CREATE INDEX ix_entries_user ON entries (user);
CREATE INDEX requests_in_order ON requests (user, state, received_at);
CREATE INDEX requests_by_state ON requests (state, user);
CREATE INDEX ix_models_owner ON models (owner);
CREATE INDEX ix_decisions_request_id ON decisions (request_id);
CREATE INDEX replies_due ON replies (state, due_at);
CREATE INDEX ix_replies_request_id ON replies (request_id);
CREATE INDEX ix_deeds_request_id ON deeds (request_id);
CREATE INDEX deeds_in_order ON deeds (user, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('requests',1);
INSERT INTO "sqlite_sequence" VALUES('decisions',1);
INSERT INTO "sqlite_sequence" VALUES('replies',1);
COMMIT;
