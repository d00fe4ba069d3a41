# GNU General Public License v3.0+ (see LICENSE)
