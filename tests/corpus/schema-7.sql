BEGIN TRANSACTION;
CREATE TABLE answers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, identity BIGINT NOT NULL REFERENCES identities (id), kind TEXT NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL, answered_at DOUBLE PRECISION NOT NULL, checksum TEXT);
INSERT INTO "answers" VALUES(1,'1bcff4f083d256f1a1b4355eaf9b99a900433176b5d33466365d25d023fa99c7',1,'two-of-three','{"kind":"two-of-three","examples":["ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca"],"without":[],"known":[],"voter":0}','{"verdict":"none","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79488037820130229e+09,'56b1eb977ff51f64ef1ee92cd5cb46fa29461adbec603589d7f8738a675ac668');
INSERT INTO "answers" VALUES(2,'c9c3840859354bedcea85b60eb480a06aec911f79d3fc62a2459573fbfbb0a84',1,'two-of-three','{"kind":"two-of-three","examples":["822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6"],"without":[],"known":[],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature b",""],"shown":[0,1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.79488037820130229e+09,'842674074e89e3d4386f0fb677c9c5cf4f1f6788bfc6835360394f2dd96e4a4b');
INSERT INTO "answers" VALUES(3,'00d79a8debaece6b58a05e7ecfbac44778c862d03ec8ecc8763af79a7383e54b',1,'label','{"kind":"label","feature":["feature b",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'772619870df876b75f038e5f0c46d8f55494a489164ad286f7d7aae4c196cd17');
INSERT INTO "answers" VALUES(4,'07889a0e5f146db86afe3b0a0c37dfc0cdc79ccfbddbdfd94e1b11dc2417d544',1,'label','{"kind":"label","feature":["feature b",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'d67e010354d1ac0970ad1aaf8ba2230ff34d57f42333ce48574dad20ea43de06');
INSERT INTO "answers" VALUES(5,'1bcff4f083d256f14dc53b09b781206372891dae2835110e20199aa8b3cbc296',1,'label','{"kind":"label","feature":["feature b",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'b8de4e6f396e3fab5094813a045e1e6b4c78f03ea4dfb8c938579db361cb0e3a');
INSERT INTO "answers" VALUES(6,'2899ace9e2edc384d9e52073f10e4440bddfc696e14ed3e2b5718f840caf33e3',1,'label','{"kind":"label","feature":["feature b",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'13e26acdb5073ee453fefeae9bfafff68f1c82627ad221c7cf9bf4f289e63653');
INSERT INTO "answers" VALUES(7,'910c925f82e869e1f0cc4334833c643c67975504164b14bdffcd9cc7e5074c2c',1,'label','{"kind":"label","feature":["feature b",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'b7a00ad8ca94fe32ce3fb08cc492f2bbfd741844ebc7cfad89490a2f3847c95d');
INSERT INTO "answers" VALUES(8,'c9c3840859354bed959e84cd575de6ca72362abaac4e0fb27486d77b45216385',1,'label','{"kind":"label","feature":["feature b",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1794880378.21373,'dcdb9a9e8932e95468831d98de393df6f78fd03288fa904b488ad83f5d827edc');
INSERT INTO "answers" VALUES(9,'1bcff4f083d256f15c5ba385d5379c9c9082847e6ee532ca777b878697e0787f',1,'pair','{"kind":"pair","examples":["ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955"],"without":[],"known":["feature b"],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature a",""],"shown":[1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782262592316e+09,'7ce7641553ee0a6520781cc7faeccf8b4110ac19d5a9ff2dae76ab8fef6178a8');
INSERT INTO "answers" VALUES(10,'c9c3840859354bed7201bb90be7e2cb6152d372832dc135cd55c0ecd0f339c6f',1,'pair','{"kind":"pair","examples":["822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663"],"without":[],"known":["feature b"],"voter":0}','{"verdict":"feature","by":"worker 0","feature":["feature d",""],"shown":[1],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782262592316e+09,'a82b0d6857e15aa5abe75b296375106a21720e532eb7736ea0ec3a6f4161bdbb');
INSERT INTO "answers" VALUES(11,'00d79a8debaece6b21f6b431d232542d213cf4de74623bef7db6d785e70c0386',1,'label','{"kind":"label","feature":["feature d",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'0f3b783906add3e1e75848ca4a9bdba8296a9f0bad240bcae4593e0c166ae510');
INSERT INTO "answers" VALUES(12,'00d79a8debaece6b5ad63b41f7f91070c2c23bb535cb633a77c01342f2f8f3e5',1,'label','{"kind":"label","feature":["feature a",""],"example":"b47c67e6c66feeeaf2409bcfd364a4ee7fd35d68b9da03838f38f4099faa14ca","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'01c4462f20943c3337f5c0204c4686c9287e98ef72b2658dd33c4b0a535d7674');
INSERT INTO "answers" VALUES(13,'07889a0e5f146db8482779f194ed193d922009bbda28792b7cbe64427628b7ed',1,'label','{"kind":"label","feature":["feature d",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'9dbe374b331604ff8ff0cbf8f224daa87df8961e56e3be1ab7208c70920d41d2');
INSERT INTO "answers" VALUES(14,'07889a0e5f146db8880d975ce5bcd975cc009b1d448a734637f6abf25b69b5ad',1,'label','{"kind":"label","feature":["feature a",""],"example":"900a4469df00ccbfd0c145c6d1e4b7953dd0afafadd7534e3a4019e8d38fc663","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'e26f4fab58da8625e0d4b98b4d0d1e473ae7547c50b68034bd365cf0606649c1');
INSERT INTO "answers" VALUES(15,'1bcff4f083d256f10ca4221e4efc9e98247543aad19cd942a9be4ecb93c86da5',1,'label','{"kind":"label","feature":["feature d",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'b3438fd692fa9a2a4180a012e080f6deb45ff745b50a9bc35562993b93add481');
INSERT INTO "answers" VALUES(16,'1bcff4f083d256f1670a81fed48dee88cffcc4fe214d298d55a7862ad241f04e',1,'label','{"kind":"label","feature":["feature a",""],"example":"ad0387b3bd8652f730ca46d25f9c170af0fd589f42e7f23f5a9e6412d97d7e56","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'71985457ede82e719977ed5df9dcbf422c7b1be997f887167fe8b553dc9c0077');
INSERT INTO "answers" VALUES(17,'2899ace9e2edc3841133fe01453207abeaf9667a3650d8efd134861918ba016c',1,'label','{"kind":"label","feature":["feature a",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'a85a89edd26cfce158db65a8c34e75156fd5fb0b9826cf1f51fab4347e66d5c2');
INSERT INTO "answers" VALUES(18,'2899ace9e2edc384417e3ebc53437d0c95d646cce37361c47a0a3ecd8bc61a7d',1,'label','{"kind":"label","feature":["feature d",""],"example":"8b1edc22ba6ce96295724107148cd15d3269677df75655f727324f852880c955","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'1ddfb94c46c8b1e399b4b76c93aff13b669113d6b75e15983b2a2380841d8384');
INSERT INTO "answers" VALUES(19,'910c925f82e869e189c5b41e749802e68336a3d7dd138031996628e0d6ecb06c',1,'label','{"kind":"label","feature":["feature a",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'a4bd426f631ebe33dde04944ce6da018bc8643fa13739dffe2ea5d24cbe06151');
INSERT INTO "answers" VALUES(20,'910c925f82e869e1f89a8eaf140ce32ad8351a6169a7607c43d75a84119819c5',1,'label','{"kind":"label","feature":["feature d",""],"example":"65ca03e4108b9338827ea3b3f28f6a515d869b40363384e5e2f675f80bc48be6","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'dcbbbc889499e7df4945452900e8112b6ec95e417616d88622d9470b49a12807');
INSERT INTO "answers" VALUES(21,'c9c3840859354bed2db021bf16e379aa5bdab7bb2a2578e31002b1586fb7783b',1,'label','{"kind":"label","feature":["feature d",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"no","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'b8df7b1367b4fe186a333db2a5d6bb21ece284c313c6857497012538df778ccd');
INSERT INTO "answers" VALUES(22,'c9c3840859354bed3c4dc5e22e20679856f622374aef872ae03d980b71b981f8',1,'label','{"kind":"label","feature":["feature a",""],"example":"822beb0d1729878ad343b6c35b1d5e45e62f8e36b6543c2312b6f1cb6d00cdef","voter":0}','{"verdict":"yes","by":"worker 0","feature":null,"shown":[],"probability":null,"usage":[1,0,0,0,0],"cost":1000,"seconds":0.0,"raw":"","note":""}',1000,1.7948803782320373058e+09,'80fefc3dfbb93527ba0069ea4fa9acb8b68f5a7ad20d262e6b3f176bf51f461a');
CREATE TABLE charges (
        key TEXT NOT NULL, fence BIGINT NOT NULL, run BIGINT NOT NULL REFERENCES runs (id),
        oracle TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'paid', 'unknown', 'released')),
        owner TEXT NOT NULL, token TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        reserved BIGINT NOT NULL CHECK (reserved >= 0), cost BIGINT NOT NULL CHECK (cost >= 0),
        requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION, in_doubt BIGINT NOT NULL DEFAULT 0 CHECK (in_doubt >= 0), batch TEXT,
        PRIMARY KEY (key, fence));
INSERT INTO "charges" VALUES('1bcff4f083d256f1a1b4355eaf9b99a900433176b5d33466365d25d023fa99c7',1,1,'simulated:salience','two-of-three','paid','recorder','ac9ba393b83843bd9de07a9db79eacdf',900.0,1.79488127818925881384e+09,1000,1000,1,0,0,0.0,1.79488037818925881385e+09,1.79488037820130229e+09,0,NULL);
INSERT INTO "charges" VALUES('c9c3840859354bedcea85b60eb480a06aec911f79d3fc62a2459573fbfbb0a84',1,1,'simulated:salience','two-of-three','paid','recorder','ac9ba393b83843bd9de07a9db79eacdf',900.0,1.79488127818925881384e+09,1000,1000,1,0,0,0.0,1.79488037818925881385e+09,1.79488037820130229e+09,0,NULL);
INSERT INTO "charges" VALUES('00d79a8debaece6b58a05e7ecfbac44778c862d03ec8ecc8763af79a7383e54b',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('07889a0e5f146db86afe3b0a0c37dfc0cdc79ccfbddbdfd94e1b11dc2417d544',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('1bcff4f083d256f14dc53b09b781206372891dae2835110e20199aa8b3cbc296',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('2899ace9e2edc384d9e52073f10e4440bddfc696e14ed3e2b5718f840caf33e3',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('910c925f82e869e1f0cc4334833c643c67975504164b14bdffcd9cc7e5074c2c',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('c9c3840859354bed959e84cd575de6ca72362abaac4e0fb27486d77b45216385',1,1,'simulated:salience','label','paid','recorder','b4134358e4444d43ad691d3d7483da2d',900.0,1.7948812782110137939e+09,1000,1000,1,0,0,0.0,1.79488037821101379396e+09,1794880378.21373,0,NULL);
INSERT INTO "charges" VALUES('1bcff4f083d256f15c5ba385d5379c9c9082847e6ee532ca777b878697e0787f',1,1,'simulated:salience','pair','paid','recorder','cc6ec0378b68459aa06c6f4c6e44ffce',900.0,1.79488127822407126429e+09,1000,1000,1,0,0,0.0,1.79488037822407126421e+09,1.7948803782262592316e+09,0,NULL);
INSERT INTO "charges" VALUES('c9c3840859354bed7201bb90be7e2cb6152d372832dc135cd55c0ecd0f339c6f',1,1,'simulated:salience','pair','paid','recorder','cc6ec0378b68459aa06c6f4c6e44ffce',900.0,1.79488127822407126429e+09,1000,1000,1,0,0,0.0,1.79488037822407126421e+09,1.7948803782262592316e+09,0,NULL);
INSERT INTO "charges" VALUES('00d79a8debaece6b21f6b431d232542d213cf4de74623bef7db6d785e70c0386',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('00d79a8debaece6b5ad63b41f7f91070c2c23bb535cb633a77c01342f2f8f3e5',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('07889a0e5f146db8482779f194ed193d922009bbda28792b7cbe64427628b7ed',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('07889a0e5f146db8880d975ce5bcd975cc009b1d448a734637f6abf25b69b5ad',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('1bcff4f083d256f10ca4221e4efc9e98247543aad19cd942a9be4ecb93c86da5',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('1bcff4f083d256f1670a81fed48dee88cffcc4fe214d298d55a7862ad241f04e',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('2899ace9e2edc3841133fe01453207abeaf9667a3650d8efd134861918ba016c',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('2899ace9e2edc384417e3ebc53437d0c95d646cce37361c47a0a3ecd8bc61a7d',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('910c925f82e869e189c5b41e749802e68336a3d7dd138031996628e0d6ecb06c',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('910c925f82e869e1f89a8eaf140ce32ad8351a6169a7607c43d75a84119819c5',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('c9c3840859354bed2db021bf16e379aa5bdab7bb2a2578e31002b1586fb7783b',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
INSERT INTO "charges" VALUES('c9c3840859354bed3c4dc5e22e20679856f622374aef872ae03d980b71b981f8',1,1,'simulated:salience','label','paid','recorder','f719545869664824820d30dcc7e7afbd',900.0,1.79488127822957205768e+09,1000,1000,1,0,0,0.0,1.79488037822957205774e+09,1.7948803782320373058e+09,0,NULL);
CREATE TABLE cost_totals (
        run BIGINT NOT NULL REFERENCES runs (id), oracle TEXT NOT NULL, kind TEXT NOT NULL,
        paid_calls BIGINT NOT NULL, requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL, paid BIGINT NOT NULL, unknown_calls BIGINT NOT NULL, unknown BIGINT NOT NULL,
        cached_calls BIGINT NOT NULL, cached_worth BIGINT NOT NULL, PRIMARY KEY (run, oracle, kind)) WITHOUT ROWID;
INSERT INTO "cost_totals" VALUES(1,'simulated:salience','label',18,18,0,0,18000,0,0,0,0);
INSERT INTO "cost_totals" VALUES(1,'simulated:salience','pair',2,2,0,0,2000,0,0,0,0);
INSERT INTO "cost_totals" VALUES(1,'simulated:salience','two-of-three',2,2,0,0,2000,0,0,0,0);
CREATE TABLE identities (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, oracle TEXT NOT NULL, identity TEXT NOT NULL);
INSERT INTO "identities" VALUES(1,'0a8f79514c70fe09ae7baf304ea177b20f2a2a8adce1aed820d737cc9c975e31','simulated:salience','{"kind":"simulated","model":"salience","parameters":{"seed":1,"truth":"fe371a84a003fa70d6c7548b6b5da9b6a55b8b628221c846bf4fbc4582ecab72","flip":0.1,"wrong":0.0,"none":0.0,"refuse":0.0},"prompts":""}');
CREATE TABLE rate_limits (
        name TEXT PRIMARY KEY, requests_at DOUBLE PRECISION NOT NULL, tokens_at DOUBLE PRECISION NOT NULL,
        not_before DOUBLE PRECISION NOT NULL, pace DOUBLE PRECISION NOT NULL, paced_at DOUBLE PRECISION NOT NULL);
CREATE TABLE replaced_answers (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL,
        answered_at DOUBLE PRECISION NOT NULL, replaced_at DOUBLE PRECISION NOT NULL);
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
INSERT INTO "runs" VALUES(1,'run run',1,'run','discover','made','simulated:salience','{"dataset":"made","seed":5,"budget":null,"store":null,"retry_unusable":false,"oracle":"simulated","votes":1,"strategy":"auto","queries":4,"voters":1,"batch":2,"target_g":null,"nones":null,"beyond":null,"ask":null,"theta":null,"degree":null,"delta":null,"parts":null,"elicit_on":null,"label_rest":false,"provider_batch":false,"labeller":null,"escalate":null,"spot_check":null,"people":"human","wait":false,"out":null}','stopped: queries','{"paid_calls":22,"cost":22000}',1.79488037817743659022e+09,1.7948803786712658405e+09);
CREATE TABLE scopes (
        id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE,
        spent BIGINT NOT NULL CHECK (spent >= 0), reserved BIGINT NOT NULL CHECK (reserved >= 0), taken_over_by BIGINT, kept BIGINT NOT NULL DEFAULT 0);
INSERT INTO "scopes" VALUES(1,'8b1971c4a0ed74d8f09c2582aab6366c5135cae0d190c7151ef50e4257addbb5',22000,0,NULL,22);
CREATE TABLE settlements (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL, fence BIGINT NOT NULL, in_doubt BIGINT NOT NULL, cost BIGINT NOT NULL,
        reason TEXT NOT NULL, settled_at DOUBLE PRECISION NOT NULL);
CREATE TABLE twothirds_schema (version BIGINT PRIMARY KEY);
INSERT INTO "twothirds_schema" VALUES(7);
CREATE TABLE uses (
        run BIGINT NOT NULL REFERENCES runs (id), answer BIGINT NOT NULL REFERENCES answers (id),
        PRIMARY KEY (run, answer)) WITHOUT ROWID;
CREATE INDEX runs_by_scope ON runs (scope);
CREATE INDEX open_review_items ON review_items (priority DESC, id) WHERE state = 'open';
CREATE INDEX review_items_by_page ON review_items (page);
CREATE UNIQUE INDEX one_person_per_question ON review_votes (item, person, purpose);
CREATE UNIQUE INDEX one_vote_per_place ON review_votes (item, slot)
        WHERE purpose = 'vote' AND state IN ('leased', 'held', 'given');
CREATE INDEX review_votes_by_person ON review_votes (person, state);
CREATE INDEX review_leases ON review_votes (lease_until) WHERE state = 'leased';
CREATE UNIQUE INDEX one_live_claim_per_key ON charges (key) WHERE state IN ('claimed', 'sent');
CREATE INDEX live_claims_by_lease ON charges (lease_until) WHERE state IN ('claimed', 'sent');
CREATE INDEX charges_by_run ON charges (run);
CREATE INDEX replaced_answers_by_key ON replaced_answers (key);
CREATE INDEX settlements_by_charge ON settlements (key, fence);
CREATE INDEX charges_asked_again ON charges (run) WHERE fence > 1;
COMMIT;
