// PostgreSQL's words, and those that only reclock has.
import { PostgreSQL, SQLDialect } from "./vendor/editor.js";

const WORDS = "subscribe sink source snapshot progress envelope upsert debezium broker kafka topic format avro json csv protobuf retain history retract load generator up explain timeline reclock option bindings frontiers";
export const Reclock = SQLDialect.define({ ...PostgreSQL.spec, keywords: `${PostgreSQL.spec.keywords} ${WORDS}` });
