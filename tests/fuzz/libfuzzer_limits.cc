// The limits that libFuzzer holds a target to unless its command line says others: they come before
// it. ASan keeps freed memory to find its uses, which counts as well.
#include <array>
#include <vector>

extern "C" const char* __asan_default_options() { return "quarantine_size_mb=16"; }

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static std::array<char[32], 3> limits = {"-rss_limit_mb=256", "-malloc_limit_mb=128",
                                           "-timeout=10"};
  static std::vector<char*> all;
  all.assign(*argv, *argv + *argc);
  all.insert(all.begin() + 1, {limits[0], limits[1], limits[2]});
  *argc = static_cast<int>(all.size());
  all.push_back(nullptr);
  *argv = all.data();
  return 0;
}
