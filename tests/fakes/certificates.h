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
// signed by `authority`, valid for two days, or expired in 2020.
inline bool MakeCertificate(const std::string& folder, const std::string& authority,
                            const std::string& name, const std::string& names,
                            bool expired = false) {
  const std::string at = folder + "/" + name;
  const std::string by = folder + "/" + authority;
  std::string command = "cd " + folder +
                        " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                        "-subj /CN=" +
                        name + " -keyout " + at + ".key -out " + at + ".csr 2>/dev/null";
  const std::string extension = names.empty() ? "" : " -extfile " + at + ".ext";
  if (!names.empty()) command += " && echo subjectAltName=" + names + " > " + at + ".ext";
  if (expired) {
    // `openssl x509` gives no dates in the past: it takes no negative days since OpenSSL 3.5, and
    // dates since 3.4.
    command += " && : > " + at + ".index && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=" + at +
               ".index\\nserial=" + at +
               ".serial\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n[p]\\ncommonName="
               "supplied\\n' > " +
               at + ".cnf && openssl ca -batch -notext -create_serial -config " + at +
               ".cnf -cert " + by + ".pem -keyfile " + by +
               ".key -startdate 20200101000000Z -enddate 20200102000000Z -in " + at + ".csr" +
               extension + " -out " + at + ".pem 2>/dev/null";
  } else {
    command += " && openssl x509 -req -in " + at + ".csr -CA " + by + ".pem -CAkey " + by +
               ".key -CAcreateserial -days 2" + extension + " -out " + at + ".pem 2>/dev/null";
  }
  return std::system(command.c_str()) == 0;
}

}  // namespace vcpulse::fakes
