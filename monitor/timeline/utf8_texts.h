#pragma once

#include "google/protobuf/message.h"

namespace vcpulse::timeline {

// Makes every `string` field of `message`, nested ones too, valid UTF-8: each offending byte
// becomes '?'. A VM's name and a marker may be any bytes, and protobuf refuses to parse a whole
// message for one text that is not UTF-8, so a writer that let it through would lose a chunk.
void MakeTextsUtf8(google::protobuf::Message* message);

}  // namespace vcpulse::timeline
