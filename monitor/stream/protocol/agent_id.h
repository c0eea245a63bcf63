#pragma once

#include <string>

#include "absl/status/status.h"

namespace vcpulse::stream {

// Whether `id` may name an agent: 1 to 253 bytes of ASCII letters, digits and . _ - : / @ (a host
// name, or a URI such as spiffe://domain/path), beginning with a letter or digit. Errors:
// InvalidArgument in one line.
absl::Status CheckAgentId(const std::string& id);

// The folder of an agent, one path component whatever the id is: it never begins with a dot, holds
// no slash, and two ids never share one. Letters, digits and - _ . stay (so a host name is its own
// folder); every other byte becomes =XX (hexadecimal), and so do upper-case letters on a file
// system that may not tell them from lower-case ones: never, ids are told apart by case. At most
// 255 bytes: longer ones end in = and 16 hexadecimal digits of a hash.
std::string FolderOf(const std::string& agent_id);

// What FolderOf was given; for a folder that was shortened or is none of ours, the folder's name.
std::string AgentIdOf(const std::string& folder);

// The folder of a Hive partition for an agent's folder: "host=web-01". DuckDB, Hive and Spark
// decode %3A in it, so the value that they show is the agent id; an = in it would make DuckDB
// refuse the whole tree. Of a folder that was shortened it is the folder's name. At most 255 bytes:
// longer ones end in - and 16 hexadecimal digits of a hash.
std::string HostPartitionOf(const std::string& folder);

}  // namespace vcpulse::stream
