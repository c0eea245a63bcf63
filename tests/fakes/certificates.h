#pragma once

// Certificates for tests, made by the openssl command in a folder of the test.

#include <cstdlib>
#include <string>

namespace vcpulse::fakes {

// An authority of its own: FOLDER/NAME.pem is its certificate.
inline bool MakeAuthority(const std::string& folder, const std::string& name) {
  const std::string at = folder + "/" + name;
  return std::system(
             ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
              "-subj /CN=" +
              name + " -keyout " + at + ".key -out " + at + ".pem 2>/dev/null")
                 .c_str()) == 0;
}

// FOLDER/NAME.pem and FOLDER/NAME.key, with these names ("DNS:web,URI:spiffe://a/b"; empty: none),
// signed by `authority`. `days` below 0: expired since then.
inline bool MakeCertificate(const std::string& folder, const std::string& authority,
                            const std::string& name, const std::string& names, int days = 2) {
  const std::string at = folder + "/" + name;
  const std::string by = folder + "/" + authority;
  std::string command = "cd " + folder +
                        " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                        "-subj /CN=" +
                        name + " -keyout " + at + ".key -out " + at + ".csr 2>/dev/null";
  const std::string extension = names.empty() ? "" : " -extfile " + at + ".ext";
  if (!names.empty()) command += " && echo subjectAltName=" + names + " > " + at + ".ext";
  command += " && openssl x509 -req -in " + at + ".csr -CA " + by + ".pem -CAkey " + by +
             ".key -CAcreateserial -days " + std::to_string(days) + extension + " -out " + at +
             ".pem 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

}  // namespace vcpulse::fakes
