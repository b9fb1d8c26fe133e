# What `cmake --install` puts where.
install(TARGETS attend attend_static LIBRARY ARCHIVE)
install(DIRECTORY include/attend TYPE INCLUDE)
