// Owns the precompiled header of the tests (CMakeLists.txt); never linked or run.
int main() { return 0; }
