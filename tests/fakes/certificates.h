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
// signed by `authority`, valid for two days; or from 2020 on up to `end`, a time that date(1)
// knows.
inline bool MakeCertificate(const std::string& folder, const std::string& authority,
                            const std::string& name, const std::string& names,
                            const std::string& end = "") {
  const std::string at = folder + "/" + name;
  const std::string by = folder + "/" + authority;
  std::string command = "cd " + folder +
                        " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                        "-subj /CN=" +
                        name + " -keyout " + at + ".key -out " + at + ".csr 2>/dev/null";
  const std::string extension = names.empty() ? "" : " -extfile " + at + ".ext";
  if (!names.empty()) command += " && echo subjectAltName=" + names + " > " + at + ".ext";
  if (!end.empty()) {
    // `openssl x509` gives no dates in the past: it takes no negative days since OpenSSL 3.5, and
    // dates since 3.4.
    command +=
        " && : > " + at + ".index && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=" + at +
        ".index\\nserial=" + at +
        ".serial\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n[p]\\ncommonName="
        "supplied\\n' > " +
        at + ".cnf && openssl ca -batch -notext -create_serial -config " + at + ".cnf -cert " + by +
        ".pem -keyfile " + by + ".key -startdate 20200101000000Z -enddate $(date -u -d '" + end +
        "' +%Y%m%d%H%M%SZ) -in " + at + ".csr" + extension + " -out " + at + ".pem 2>/dev/null";
  } else {
    command += " && openssl x509 -req -in " + at + ".csr -CA " + by + ".pem -CAkey " + by +
               ".key -CAcreateserial -days 2" + extension + " -out " + at + ".pem 2>/dev/null";
  }
  return std::system(command.c_str()) == 0;
}

// FOLDER/AUTHORITY.crl: the certificate `name` is revoked, or none where it is empty.
inline bool MakeRevocations(const std::string& folder, const std::string& authority,
                            const std::string& name) {
  const std::string by = folder + "/" + authority;
  const std::string ca =
      "openssl ca -batch -config " + by + ".cnf -cert " + by + ".pem -keyfile " + by + ".key ";
  std::string command = "cd " + folder + " && : > " + by + ".index && echo 01 > " + by +
                        ".number && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=" + by +
                        ".index\\ncrlnumber=" + by +
                        ".number\\ndefault_md=sha256\\ndefault_crl_days=2\\n' > " + by + ".cnf";
  if (!name.empty()) command += " && " + ca + "-revoke " + folder + "/" + name + ".pem 2>/dev/null";
  command += " && " + ca + "-gencrl -out " + by + ".crl 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

}  // namespace vcpulse::fakes
