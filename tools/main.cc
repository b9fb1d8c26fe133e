#include "tools/program.h"

int main(int argc, char** argv) { return attend::tools::Program().Main(argc, argv); }
