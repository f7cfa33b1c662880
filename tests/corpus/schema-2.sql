BEGIN TRANSACTION;
CREATE TABLE answers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, identity BIGINT NOT NULL REFERENCES identities (id), kind TEXT NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL, answered_at DOUBLE PRECISION NOT NULL);
INSERT INTO "answers" VALUES(1,'a1b4355eaf9b99a900433176b5d33466365d25d023fa99c792f4efc1b868bf52',1,'two-of-three','{"kind":"two-of-three","examples":["ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca"],"without":[],"known":[],"voter":0}','{"verdict":"none","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093528179597859e+09);
INSERT INTO "answers" VALUES(2,'cea85b60eb480a06aec911f79d3fc62a2459573fbfbb0a842346f2c960fb9eb5',1,'two-of-three','{"kind":"two-of-three","examples":["822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6"],"without":[],"known":[],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature b",""],"shown":[0,1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093528179597859e+09);
INSERT INTO "answers" VALUES(3,'4dc53b09b781206372891dae2835110e20199aa8b3cbc296f2badc0dd8728109',1,'label','{"kind":"label","feature":["feature b",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(4,'58a05e7ecfbac44778c862d03ec8ecc8763af79a7383e54bd9efad16997effc6',1,'label','{"kind":"label","feature":["feature b",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(5,'6afe3b0a0c37dfc0cdc79ccfbddbdfd94e1b11dc2417d5441222df48fb1ae375',1,'label','{"kind":"label","feature":["feature b",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(6,'959e84cd575de6ca72362abaac4e0fb27486d77b45216385fc175af9edc56d15',1,'label','{"kind":"label","feature":["feature b",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(7,'d9e52073f10e4440bddfc696e14ed3e2b5718f840caf33e34cfbdd0b8e98aec5',1,'label','{"kind":"label","feature":["feature b",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(8,'f0cc4334833c643c67975504164b14bdffcd9cc7e5074c2c2b884d4b93b2c07e',1,'label','{"kind":"label","feature":["feature b",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093530966043464e+09);
INSERT INTO "answers" VALUES(9,'5c5ba385d5379c9c9082847e6ee532ca777b878697e0787fd0ea96e6fd205af0',1,'pair','{"kind":"pair","examples":["ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955"],"without":[],"known":["feature b"],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature a",""],"shown":[1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093533759617803e+09);
INSERT INTO "answers" VALUES(10,'7201bb90be7e2cb6152d372832dc135cd55c0ecd0f339c6f5d2a94e89b1c4a74',1,'pair','{"kind":"pair","examples":["822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663"],"without":[],"known":["feature b"],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature d",""],"shown":[1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093533759617803e+09);
INSERT INTO "answers" VALUES(11,'0ca4221e4efc9e98247543aad19cd942a9be4ecb93c86da5050f058de988acc2',1,'label','{"kind":"label","feature":["feature d",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(12,'1133fe01453207abeaf9667a3650d8efd134861918ba016c45f089e683a77cdc',1,'label','{"kind":"label","feature":["feature a",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(13,'21f6b431d232542d213cf4de74623bef7db6d785e70c0386c85fa958375357af',1,'label','{"kind":"label","feature":["feature d",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(14,'2db021bf16e379aa5bdab7bb2a2578e31002b1586fb7783b84d2c789a1e69bf3',1,'label','{"kind":"label","feature":["feature d",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(15,'3c4dc5e22e20679856f622374aef872ae03d980b71b981f88912d6c92c3ee87e',1,'label','{"kind":"label","feature":["feature a",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(16,'417e3ebc53437d0c95d646cce37361c47a0a3ecd8bc61a7d936593fc63a57858',1,'label','{"kind":"label","feature":["feature d",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(17,'482779f194ed193d922009bbda28792b7cbe64427628b7eda66e29edb8cd6704',1,'label','{"kind":"label","feature":["feature d",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(18,'5ad63b41f7f91070c2c23bb535cb633a77c01342f2f8f3e531c3f11043c24d34',1,'label','{"kind":"label","feature":["feature a",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(19,'670a81fed48dee88cffcc4fe214d298d55a7862ad241f04e1c260e5aa361d450',1,'label','{"kind":"label","feature":["feature a",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(20,'880d975ce5bcd975cc009b1d448a734637f6abf25b69b5add42a21b2a93615d0',1,'label','{"kind":"label","feature":["feature a",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(21,'89c5b41e749802e68336a3d7dd138031996628e0d6ecb06cc9549600daf84da4',1,'label','{"kind":"label","feature":["feature a",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
INSERT INTO "answers" VALUES(22,'f89a8eaf140ce32ad8351a6169a7607c43d75a84119819c5798f0fe66abbcbe4',1,'label','{"kind":"label","feature":["feature d",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79482093535012149809e+09);
CREATE TABLE charges (
        key TEXT NOT NULL, fence BIGINT NOT NULL, run BIGINT NOT NULL REFERENCES runs (id),
        oracle TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'paid', 'unknown', 'released')),
        owner TEXT NOT NULL, token TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        reserved BIGINT NOT NULL CHECK (reserved >= 0), cost BIGINT NOT NULL CHECK (cost >= 0),
        requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION,
        PRIMARY KEY (key, fence)) WITHOUT ROWID;
INSERT INTO "charges" VALUES('0ca4221e4efc9e98247543aad19cd942a9be4ecb93c86da5050f058de988acc2',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('1133fe01453207abeaf9667a3650d8efd134861918ba016c45f089e683a77cdc',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('21f6b431d232542d213cf4de74623bef7db6d785e70c0386c85fa958375357af',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('2db021bf16e379aa5bdab7bb2a2578e31002b1586fb7783b84d2c789a1e69bf3',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('3c4dc5e22e20679856f622374aef872ae03d980b71b981f88912d6c92c3ee87e',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('417e3ebc53437d0c95d646cce37361c47a0a3ecd8bc61a7d936593fc63a57858',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('482779f194ed193d922009bbda28792b7cbe64427628b7eda66e29edb8cd6704',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('4dc53b09b781206372891dae2835110e20199aa8b3cbc296f2badc0dd8728109',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('58a05e7ecfbac44778c862d03ec8ecc8763af79a7383e54bd9efad16997effc6',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('5ad63b41f7f91070c2c23bb535cb633a77c01342f2f8f3e531c3f11043c24d34',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('5c5ba385d5379c9c9082847e6ee532ca777b878697e0787fd0ea96e6fd205af0',1,1,'simulated:salience','pair','paid','recorder','79a59cc868414f7aac07644480c3c5ee',900.0,1.79482183533303737638e+09,1000,1000,1,0,0,0.0,1.79482093533303737643e+09,1.79482093533759617803e+09);
INSERT INTO "charges" VALUES('670a81fed48dee88cffcc4fe214d298d55a7862ad241f04e1c260e5aa361d450',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('6afe3b0a0c37dfc0cdc79ccfbddbdfd94e1b11dc2417d5441222df48fb1ae375',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('7201bb90be7e2cb6152d372832dc135cd55c0ecd0f339c6f5d2a94e89b1c4a74',1,1,'simulated:salience','pair','paid','recorder','79a59cc868414f7aac07644480c3c5ee',900.0,1.79482183533303737638e+09,1000,1000,1,0,0,0.0,1.79482093533303737643e+09,1.79482093533759617803e+09);
INSERT INTO "charges" VALUES('880d975ce5bcd975cc009b1d448a734637f6abf25b69b5add42a21b2a93615d0',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('89c5b41e749802e68336a3d7dd138031996628e0d6ecb06cc9549600daf84da4',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
INSERT INTO "charges" VALUES('959e84cd575de6ca72362abaac4e0fb27486d77b45216385fc175af9edc56d15',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('a1b4355eaf9b99a900433176b5d33466365d25d023fa99c792f4efc1b868bf52',1,1,'simulated:salience','two-of-three','paid','recorder','5e832be8a37a46d091954bcb58f5cae9',900.0,1.79482183526973843577e+09,1000,1000,1,0,0,0.0,1.79482093526973843569e+09,1.79482093528179597859e+09);
INSERT INTO "charges" VALUES('cea85b60eb480a06aec911f79d3fc62a2459573fbfbb0a842346f2c960fb9eb5',1,1,'simulated:salience','two-of-three','paid','recorder','5e832be8a37a46d091954bcb58f5cae9',900.0,1.79482183526973843577e+09,1000,1000,1,0,0,0.0,1.79482093526973843569e+09,1.79482093528179597859e+09);
INSERT INTO "charges" VALUES('d9e52073f10e4440bddfc696e14ed3e2b5718f840caf33e34cfbdd0b8e98aec5',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('f0cc4334833c643c67975504164b14bdffcd9cc7e5074c2c2b884d4b93b2c07e',1,1,'simulated:salience','label','paid','recorder','46974e43b34d4020a199b99eadfe0bc8',900.0,1.79482183530238795276e+09,1000,1000,1,0,0,0.0,1.79482093530238795281e+09,1.79482093530966043464e+09);
INSERT INTO "charges" VALUES('f89a8eaf140ce32ad8351a6169a7607c43d75a84119819c5798f0fe66abbcbe4',1,1,'simulated:salience','label','paid','recorder','bac1c52cfce247e294c0e8291c4246f2',900.0,1.79482183534497261043e+09,1000,1000,1,0,0,0.0,1.79482093534497261048e+09,1.79482093535012149809e+09);
CREATE TABLE identities (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, oracle TEXT NOT NULL, identity TEXT NOT NULL);
INSERT INTO "identities" VALUES(1,'0a8f79514c70fe09ae7baf304ea177b20f2a2a8adce1aed820d737cc9c975e31','simulated:salience','{"kind":"simulated","model":"salience","parameters":{"seed":1,"truth":"fe371a84a003fa70d6c7548b6b5da9b6a55b8b628221c846bf4fbc4582ecab72","flip":0.1,"wrong":0.0,"none":0.0,"refuse":0.0},"prompts":""}');
CREATE TABLE review_examples (digest TEXT PRIMARY KEY, shown TEXT NOT NULL);
CREATE TABLE review_hits (
        token TEXT PRIMARY KEY, queue TEXT NOT NULL, items TEXT NOT NULL, terms TEXT NOT NULL, run_id TEXT NOT NULL,
        hit_id TEXT, state TEXT NOT NULL CHECK (state IN ('planned', 'posted', 'collected')),
        created_at DOUBLE PRECISION NOT NULL);
CREATE TABLE review_invitations (
        id INTEGER PRIMARY KEY, person BIGINT NOT NULL REFERENCES review_people (id), created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL, revoked_at DOUBLE PRECISION);
CREATE TABLE review_items (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
        page TEXT NOT NULL, votes BIGINT NOT NULL, filled BIGINT NOT NULL CHECK (filled >= 0),
        given BIGINT NOT NULL CHECK (given >= 0), skipped BIGINT NOT NULL, patience BIGINT NOT NULL,
        priority BIGINT NOT NULL, deadline DOUBLE PRECISION, price BIGINT NOT NULL, hourly BIGINT NOT NULL,
        expected TEXT, published BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'done', 'given up', 'check')),
        created_at DOUBLE PRECISION NOT NULL);
CREATE TABLE review_people (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL CHECK (role IN ('reviewer', 'admin', 'worker')),
        created_at DOUBLE PRECISION NOT NULL);
CREATE TABLE review_secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE review_votes (
        id INTEGER PRIMARY KEY, item BIGINT NOT NULL REFERENCES review_items (id),
        person BIGINT NOT NULL REFERENCES review_people (id),
        purpose TEXT NOT NULL CHECK (purpose IN ('vote', 'check', 'repeat')), slot BIGINT,
        state TEXT NOT NULL CHECK (state IN ('leased', 'expired', 'held', 'given', 'late', 'skipped', 'withdrawn')),
        answer TEXT, shown_at DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        answered_at DOUBLE PRECISION, seconds DOUBLE PRECISION NOT NULL, cost BIGINT NOT NULL,
        submission TEXT, answer_key TEXT);
CREATE TABLE review_waits (
        run_id TEXT NOT NULL, item BIGINT NOT NULL REFERENCES review_items (id), suspended BIGINT NOT NULL,
        PRIMARY KEY (run_id, item)) WITHOUT ROWID;
CREATE TABLE runs (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, scope BIGINT NOT NULL REFERENCES scopes (id),
        name TEXT NOT NULL, flow TEXT NOT NULL, dataset TEXT NOT NULL, oracle TEXT NOT NULL, settings TEXT NOT NULL,
        status TEXT NOT NULL, summary TEXT, started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION);
INSERT INTO "runs" VALUES(1,'run run',1,'run','discover','made','simulated:salience','{"dataset":"made","oracle":"simulated","strategy":"auto","queries":4,"votes":1,"voters":1,"batch":2,"seed":5,"budget":null,"target_g":null,"nones":null,"beyond":null,"ask":null,"theta":null,"degree":null,"delta":null,"parts":null,"elicit_on":null,"label_rest":false,"provider_batch":false,"labeller":null,"escalate":null,"spot_check":null,"people":"human","wait":false,"store":null,"out":null}','stopped: queries','{"paid_calls":22,"cost":22000}',1.79482093475720310207e+09,1.79482093654283142089e+09);
CREATE TABLE scopes (
        id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE,
        spent BIGINT NOT NULL CHECK (spent >= 0), reserved BIGINT NOT NULL CHECK (reserved >= 0));
INSERT INTO "scopes" VALUES(1,'8b1971c4a0ed74d8f09c2582aab6366c5135cae0d190c7151ef50e4257addbb5',22000,0);
CREATE TABLE twothirds_schema (version BIGINT PRIMARY KEY);
INSERT INTO "twothirds_schema" VALUES(2);
CREATE TABLE uses (
        run BIGINT NOT NULL REFERENCES runs (id), answer BIGINT NOT NULL REFERENCES answers (id),
        PRIMARY KEY (run, answer)) WITHOUT ROWID;
CREATE INDEX runs_by_scope ON runs (scope);
CREATE UNIQUE INDEX one_live_claim_per_key ON charges (key) WHERE state IN ('claimed', 'sent');
CREATE INDEX live_claims_by_lease ON charges (lease_until) WHERE state IN ('claimed', 'sent');
CREATE INDEX charges_by_run ON charges (run);
CREATE INDEX open_review_items ON review_items (priority DESC, id) WHERE state = 'open';
CREATE INDEX review_items_by_page ON review_items (page);
CREATE UNIQUE INDEX one_person_per_question ON review_votes (item, person, purpose);
CREATE UNIQUE INDEX one_vote_per_place ON review_votes (item, slot)
        WHERE purpose = 'vote' AND state IN ('leased', 'held', 'given');
CREATE INDEX review_votes_by_person ON review_votes (person, state);
CREATE INDEX review_leases ON review_votes (lease_until) WHERE state = 'leased';
COMMIT;
