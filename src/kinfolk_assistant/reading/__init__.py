"""Reading and answering what others send: iCalendar (RFC 5545), iTIP (RFC 5546), mail (RFC 6047), within bounds."""
